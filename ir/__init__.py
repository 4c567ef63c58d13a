"""What IR is: values, operations, types, attributes, symbolic dims, text, verifier, rewriting, passes."""
