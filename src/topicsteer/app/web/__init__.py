"""The workbench over HTTP: routes, typed messages, access control and notices."""
