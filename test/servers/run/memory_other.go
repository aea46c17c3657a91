//go:build !linux

package main

// memory returns no directory: only Linux has one for everybody.
func memory() string { return "" }
