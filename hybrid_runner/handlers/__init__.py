"""What applications register: kinds of jobs, and what a handler is given."""
