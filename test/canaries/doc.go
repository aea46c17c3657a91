// Package canaries sends secrets through a running server in every way that a client, a browser or
// an operator could. It then searches for the secrets in the log, in rows, in the session store, in
// files, in metrics, in responses, in exports and in profiles. It may find them only hashed or
// sealed, or where a table in the test permits them.
package canaries
