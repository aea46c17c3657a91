//go:build !linux

package main

// memory returns "": only Linux has such a directory for everyone.
func memory() string { return "" }
