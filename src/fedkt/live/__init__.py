"""The two halves on real machines: a party's own file in, one bundle out; bundles in, the final model out."""
