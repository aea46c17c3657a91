// Package faults breaks a running server at bad moments, or asks it for the same
// thing many times at once, and looks at what it promised.
//
// LONG=1 repeats the kills, and turns the keys, as often as a release asks for.
package faults
