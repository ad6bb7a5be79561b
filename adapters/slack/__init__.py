"""Slack as a chat platform: an app, by Socket Mode or by HTTP."""
