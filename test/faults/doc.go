// Package faults breaks a running server at bad moments, or sends it the same request many times
// concurrently, and checks that it keeps its promises.
//
// LONG=1 repeats the kills and key rotations as many times as a release requires. CALLS=10000 is
// the number of calls that TestCallsLeaveNothing makes.
package faults
