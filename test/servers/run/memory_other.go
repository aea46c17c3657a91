//go:build !linux

package main

// memory gives no directory: only Linux has one for everybody.
func memory() string { return "" }
