package main

import (
	"os"
	"os/user"
	"strconv"
)

// whoAmI names the user of this machine who runs a command, for the audit trail.
func whoAmI() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}
