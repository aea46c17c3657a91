// Package nodes runs several servers with one database and one session store, behind one address.
// It tests that the servers act as one. Something that begins on one node continues on another.
// Something that ends on one node ends on all nodes within a second. If many concurrent requests to
// all nodes compete, one of them wins.
package nodes
