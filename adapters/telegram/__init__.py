"""Telegram as a chat platform: a bot, by long polling or by webhook."""
