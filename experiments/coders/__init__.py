"""Made coders with known errors: are their errors found, and do their answers narrow the shares?"""
