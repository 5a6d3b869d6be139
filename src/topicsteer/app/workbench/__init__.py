"""The workbench's state and answers, without HTTP."""
