package database

import "slices"

// The tables by which a database is known to be selvage's: one notes which migrations
// were made, the other holds sessions.
const (
	Versions = "selvage_versions"
	Sessions = "selvage_sessions"
)

// EarlierVersions and EarlierSessions are what the two were called at first: the first
// is any program's that uses goose, the second may be another's too.
const (
	EarlierVersions = "goose_db_version"
	EarlierSessions = "session_entries"
)

// IsOurs tells by the names of all its tables whether a database is selvage's.
func IsOurs(tables []string) bool {
	return slices.Contains(tables, Versions) || slices.Contains(tables, Sessions) || HasEarlier(tables) ||
		slices.Equal(tables, []string{EarlierSessions})
}

// HasEarlier tells whether selvage's migrations are noted under the earlier name: it
// stands beside what the first of them made.
func HasEarlier(tables []string) bool {
	for _, name := range []string{EarlierVersions, "revocations", "ring", "sequences"} {
		if !slices.Contains(tables, name) {
			return false
		}
	}
	return !slices.Contains(tables, Versions)
}
