"""Reading the home of another gateway, and moving it in. Nothing of theirs is changed."""
