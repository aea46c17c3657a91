package keys

import "crypto/sha256"

// backups is the purpose passed to Derive for the secret that authenticates backups.
const backups = "backups"

// BackupKey returns the secret that authenticates backups, and the fingerprint of the master key
// from which it is derived.
func (r *Ring) BackupKey() (secret [sha256.Size]byte, fingerprint string) {
	return r.Derive(backups), Fingerprint(r.master())
}

// BackupKeyOf returns the secret that authenticates backups made with a master key.
func BackupKeyOf(master []byte) [sha256.Size]byte { return derive(master, backups) }
