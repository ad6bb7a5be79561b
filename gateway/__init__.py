"""The service: chats in, turns and commands through, replies out."""
