"""A study in one archive (`mcgrpo bundle`), and the checks that a reviewer makes of it (`mcgrpo verify`)."""
