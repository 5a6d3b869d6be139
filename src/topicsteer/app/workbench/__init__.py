"""The workbench without HTTP: project, session, queue, views, exports and fits."""
