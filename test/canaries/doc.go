// Package canaries sends secrets through a running server in every way that a client, a browser
// or an operator could, and then looks for them: in the log, in rows, in the session store, in
// files, in metrics, in answers, in exports and in profiles. They may be found only hashed or
// sealed, or where a table of the test says so.
package canaries
