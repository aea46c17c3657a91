// Package nodes runs several servers on one database and one session store, behind one
// address, and tests that they act as one. What begins on one node continues on another.
// What ends on one node ends on all within a second. Of many concurrent requests to all
// nodes, one wins.
package nodes
