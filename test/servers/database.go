package servers

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

// createDatabase creates a database and a role that owns it, and returns its URL. admin is the URL
// of a superuser. For like, see [PostgresLike].
func createDatabase(t T, admin, like string) string {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text())
	password := rand.Text()

	template, member := "template0", ""
	if like != "" {
		u, err := url.Parse(like)
		check(t, err)
		template, member = strings.TrimPrefix(u.Path, "/"), " IN ROLE "+u.User.Username()
	}
	// Copying the files of a template takes half the CPU time of copying its pages through the log.
	check(t, administer(admin,
		fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'%s", name, verifier(t, password), member),
		fmt.Sprintf("CREATE DATABASE %[1]s OWNER %[1]s TEMPLATE %[2]s STRATEGY FILE_COPY", name, template)))

	t.Cleanup(func() {
		// This fails if the server was stopped. Then its databases are removed with its files.
		_ = administer(admin, fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", name), "DROP ROLE "+name)
	})

	u, err := url.Parse(admin)
	check(t, err)
	u.User, u.Path = url.UserPassword(name, password), "/"+name

	// By default, the driver first asks for TLS, and then connects again without it, because the
	// server has no certificate. PostgreSQL would start two processes for each connection.
	u.RawQuery = "sslmode=disable"
	return u.String()
}

// verifier returns what PostgreSQL stores instead of a password (RFC 5803). It uses one iteration
// instead of 4096, because each new connection repeats the iterations.
func verifier(t T, password string) string {
	t.Helper()
	salt := []byte(rand.Text())
	key, err := pbkdf2.Key(sha256.New, password, salt, 1, sha256.Size)
	check(t, err)

	sign := func(name string) []byte {
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write([]byte(name)) // never fails
		return mac.Sum(nil)
	}
	stored, encode := sha256.Sum256(sign("Client Key")), base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$1:%s$%s:%s", encode(salt), encode(stored[:]), encode(sign("Server Key")))
}

// administer runs statements as a superuser, each in its own transaction. It keeps its connections
// for later calls, because a new connection costs as much CPU time as dropping a database.
func administer(admin string, statements ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := administrator(ctx, admin)
	if err != nil {
		return err
	}

	for _, statement := range statements {
		if _, err := c.Exec(ctx, statement).ReadAll(); err != nil {
			_ = c.Close(ctx) // the state of the connection is unknown
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	idle.put(admin, c)
	return nil
}

// administrator returns an idle connection that still works, or else a new one.
func administrator(ctx context.Context, admin string) (*pgconn.PgConn, error) {
	for c := idle.take(admin); c != nil; c = idle.take(admin) {
		if c.Ping(ctx) == nil {
			return c, nil
		}
		_ = c.Close(ctx) // the server was stopped
	}
	c, err := pgconn.Connect(ctx, admin)
	if err != nil {
		return nil, fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	return c, nil
}

// idle holds the connections that no call uses.
var idle connections

// connections holds open connections, by the URL of their server.
type connections struct {
	mu   sync.Mutex
	free map[string][]*pgconn.PgConn
}

// take removes and returns a connection to the server at url. It returns nil if none is left.
func (c *connections) take(url string) *pgconn.PgConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	free := c.free[url]
	if len(free) == 0 {
		return nil
	}
	c.free[url] = free[:len(free)-1]
	return free[len(free)-1]
}

func (c *connections) put(url string, conn *pgconn.PgConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.free == nil {
		c.free = make(map[string][]*pgconn.PgConn)
	}
	c.free[url] = append(c.free[url], conn)
}
