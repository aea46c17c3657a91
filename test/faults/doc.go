// Package faults breaks a running server at bad moments, or asks it for the same thing
// many times at once, and checks that it keeps its promises.
//
// LONG=1 repeats the kills and key rotations as often as a release requires.
package faults
