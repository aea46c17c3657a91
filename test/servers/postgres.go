package servers

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// A PostgresServer is a PostgreSQL server that tests can start and stop. It keeps acknowledged
// transactions when it is killed. As on most servers, text is sorted by the rules of a language
// instead of by bytes, except in columns with another collation.
type PostgresServer struct {
	Server
	URL string // URL of the superuser; see [PostgresServer.Database]
}

// Postgres returns the URL of an empty database that is dropped at the end of the test. The role in
// the URL owns the database and has no other rights.
func Postgres(t T) string {
	t.Helper()
	return PostgresLike(t, "")
}

// PostgresLike is like [Postgres], but copies the database at the URL original, which must not be
// in use at the same time. If original is "", the new database is empty. The new role has the same
// rights in the copy as the role in original has in its database.
func PostgresLike(t T, original string) string {
	t.Helper()
	admin := os.Getenv("SELVAGE_TEST_POSTGRES")
	if admin == "" {
		p, err := sharedPostgres()
		check(t, err)
		admin = p.URL
	}
	return createDatabase(t, admin, original)
}

var sharedPostgres = sync.OnceValues(func() (*PostgresServer, error) { return startPostgres(nil) })

// OwnPostgres starts a server that only this test uses, with settings such as "max_connections=20".
func OwnPostgres(t T, settings ...string) *PostgresServer {
	t.Helper()
	p, err := startPostgres(settings)
	check(t, err)
	t.Cleanup(p.remove)
	return p
}

// Database returns the URL of a new empty database on this server; see [Postgres].
func (p *PostgresServer) Database(t T) string {
	t.Helper()
	return createDatabase(t, p.URL, "")
}

// SQL runs statements as the superuser, each in its own transaction. It returns the results with
// one line per row and bars between the columns.
func (p *PostgresServer) SQL(t T, statements string) string {
	t.Helper()
	return SQL(t, p.URL, statements)
}

// SQL is like [PostgresServer.SQL], but uses the database and the role in the URL.
func SQL(t T, url, statements string) string {
	t.Helper()
	out, err := psql(url, statements)
	check(t, err)
	return out
}

func startPostgres(settings []string) (*PostgresServer, error) {
	server, err := program("postgres")
	if err != nil {
		return nil, err
	}

	var account *syscall.Credential // nil means the account of this process
	if os.Geteuid() == 0 {
		account, err = unprivileged()
		if err != nil {
			return nil, err
		}
	}

	port, err := freePort()
	if err != nil {
		return nil, err
	}

	dir, err := newPlace("postgres", account)
	if err != nil {
		return nil, err
	}

	password := rand.Text()
	if err := initdb(dir, password, account); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}

	url := fmt.Sprintf("postgres://postgres:%s@127.0.0.1:%d/postgres", password, port)
	p := newPostgres(server, dir, port, url, settings)
	p.account = account
	if err := p.start(); err != nil {
		p.remove()
		return nil, err
	}
	return p, nil
}

// initdb creates an empty database cluster. The files are not synced to disk, because a crash of
// the machine ends the test anyway.
func initdb(dir, password string, account *syscall.Credential) error {
	initdb, err := program("initdb")
	if err != nil {
		return err
	}

	file := dir + ".password"
	if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
		return fmt.Errorf("writing password: %w", err)
	}
	defer os.Remove(file)
	if account != nil {
		if err := os.Chown(file, int(account.Uid), int(account.Gid)); err != nil {
			return fmt.Errorf("changing the owner of the password file: %w", err)
		}
	}

	cmd := exec.Command(initdb, "-D", dir, "-U", "postgres", "--pwfile", file, "-A", "scram-sha-256",
		"--no-sync", "--no-instructions",
		"-E", "UTF8", "--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en")
	cmd.Dir = filepath.Dir(dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: account}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("creating a PostgreSQL cluster: %w\n%s", err, out)
	}
	return nil
}

// unprivileged returns an account for servers such as PostgreSQL, which refuse to run as root.
func unprivileged() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}

		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("reading account %s: %w", name, err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL refuses to run as root, and there is no account postgres or nobody")
}

func psql(url, statements string) (string, error) {
	path, err := program("psql")
	if err != nil {
		return "", err
	}
	cmd := exec.Command(path, "-XAtq", "-v", "ON_ERROR_STOP=1", url)
	cmd.Stdin = strings.NewReader(statements)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("psql: %w: %s", err, bytes.TrimSpace(errs.Bytes()))
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// remove stops the server and removes its data. It also frees the shared memory segment that a
// killed server leaves behind.
func (p *PostgresServer) remove() {
	_ = p.stop() // a server that does not stop dies with this process
	if text, err := os.ReadFile(filepath.Join(p.dir, "postmaster.pid")); err == nil {
		// The seventh line contains the segment's key and ID.
		if lines := strings.Split(string(text), "\n"); len(lines) > 6 {
			if fields := strings.Fields(lines[6]); len(fields) == 2 {
				_ = exec.Command("ipcrm", "-m", fields[1]).Run()
			}
		}
	}
	p.Server.remove()
}
