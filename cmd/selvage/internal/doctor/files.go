package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/fabric/kinds"
)

// asServer returns the remedy for a path to which the current user has insufficient access.
func (e *Examination) asServer(path string) Text {
	me := os.Geteuid()
	owner := ownerOf(path)
	if me == owner {
		return Text("chmod u+rwX " + path)
	}
	owned := path
	if isBelow(path, e.Config.Data) {
		owned = e.Config.Data
	}
	return textf("run this as the server's account (sudo -u %s selvage doctor), "+
		"or change the owner to this account (chown -R %s %s)",
		datadir.Account(owner), datadir.Account(me), owned)
}

// ownerOf returns the user ID of the owner of a path or, if that cannot be found, of its closest
// parent.
func ownerOf(path string) int {
	dir := absolute(path)
	for {
		if info, err := os.Stat(dir); err == nil {
			return datadir.UID(info)
		}
		dir = filepath.Dir(dir)
	}
}

// isBelow reports whether a path is a directory or something in it.
func isBelow(path, dir string) bool {
	rel, err := filepath.Rel(absolute(dir), absolute(path))
	return err == nil && filepath.IsLocal(rel)
}

// server returns the user ID of the running server or, if no server is running, the user ID that a server
// would have if the current user started it. For root, this is the owner of the data directory.
func (e *Examination) server() int {
	if e.alive {
		if info, err := os.Stat(procOf(e.running.PID)); err == nil {
			return datadir.UID(info)
		}
	}
	if me := os.Geteuid(); me != 0 {
		return me
	}
	if info, err := os.Stat(e.Config.Data); err == nil {
		return datadir.UID(info)
	}
	return 0
}

// files checks the owners and modes of the entries of the data directory.
func (e *Examination) files(dir string) (all []Finding) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // the directory check reports this error
	}

	var strange, readable []string
	who := e.server()
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || strings.HasPrefix(entry.Name(), probe) {
			continue
		}
		if who != 0 && datadir.UID(info) != who {
			strange = append(strange, fmt.Sprintf("%s (%s)", entry.Name(), datadir.Owner(info)))
		}
		if info.Mode().Perm()&0o007 != 0 && !isPublic(entry.Name()) && !info.IsDir() {
			readable = append(readable, entry.Name())
		}
	}

	if strange != nil {
		all = append(all, brokenf("not owned by %s, the server's account: %s", datadir.Account(who), few(strange)).
			withRemedy(Text("chown -R "+datadir.Account(who)+" "+dir)))
	}

	if readable != nil {
		remedy := Text("cd " + dir + " && chmod 600 " + strings.Join(readable, " "))
		all = append(all, warnedf("every user can read %s", few(readable)).withRemedy(remedy))
	}

	switch {
	case all != nil:
		return all
	case who == 0: // a server that runs as root can read all files, so no owner was compared
		return []Finding{finef("files: %s", len(entries))}
	}
	return []Finding{finef("files: %s, all owned by %s", len(entries), datadir.Account(who))}
}

// ownKinds checks that the resource kinds that the operator defined can be loaded.
func (e *Examination) ownKinds(context.Context) []Finding {
	dir := e.Config.KindsDir()
	if !isDir(dir) {
		return nil
	}
	if _, err := kinds.Load(dir); err != nil {
		return []Finding{brokenf("%s", err).withRemedy("fix or remove the file: the server does not start with it")}
	}
	return []Finding{finef("all kinds in %s are valid", absolute(dir))}
}

// few joins names with commas. If there are more than maxNames, it lists the first shownNames and the total
// number.
func few(all []string) string {
	const maxNames, shownNames = 4, 3
	if len(all) > maxNames {
		return fmt.Sprintf("%s, … (%d)", strings.Join(all[:shownNames], ", "), len(all))
	}
	return strings.Join(all, ", ")
}

// isPublic reports whether every user may read the file.
func isPublic(name string) bool { return name == datadir.RunFile || name == "ca.pem" }
