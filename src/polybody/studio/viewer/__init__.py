"""The web page: a mechanism or a run in the browser, served to this machine alone (`serve.py`).

Reports and shared pages take its scripts from here without the server, so that nothing is imported for them.
"""
