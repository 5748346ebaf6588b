"""The sub-commands, one module each; a module whose name begins with an underscore is shared by several."""
