// Package canaries sends secrets through a running server in every way that a client, a browser or
// an operator could. It then searches for them: in the log, in rows, in the session store, in
// files, in metrics, in answers, in exports and in profiles. Secrets may be found only hashed or
// sealed, or where a table in the test permits it.
package canaries
