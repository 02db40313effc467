"""Parts of a service that keeps mirrors in sync: its loop, jobs, push and operators' pages.

Mirrors, schedules and addresses come in; finished jobs, hints and views for pages go out.
"""
