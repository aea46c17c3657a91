//go:build !linux

package server

func unmapBinary() error { return nil }
