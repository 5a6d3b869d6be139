"""Are the printed numbers true?"""
