// Package faults breaks a running server at bad moments, or sends it the same request many times
// concurrently. It then checks that the server keeps its promises.
//
// LONG=1 repeats the kills and key rotations as many times as a release requires. CALLS=10000 sets
// the number of calls that TestCallsLeaveNothing makes.
package faults
