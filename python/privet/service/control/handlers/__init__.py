"""What each call does, once it is known who calls and that the call is well formed."""
