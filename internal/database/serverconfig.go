package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// defaultPatience is the default of [Config.Patience].
const defaultPatience = 5 * time.Second

// IsServer reports whether raw is the URL of a PostgreSQL database.
func IsServer(raw string) bool {
	return strings.HasPrefix(raw, "postgres://") || strings.HasPrefix(raw, "postgresql://")
}

// Check returns an error if the URL of a server, or a file that the URL names, is invalid. It does
// not connect.
func Check(raw string) error {
	_, err := parseServer(raw)
	return err
}

// server returns the configuration that the pool uses to connect.
func (c Config) server() (*pgx.ConnConfig, error) {
	config, err := parseServer(c.URL)
	if err != nil {
		return nil, err
	}
	patience := c.patience()
	config.DialFunc = dial(patience + time.Second) // longer than the server's own limit for a statement
	config.ConnectTimeout = patience
	config.ValidateConnect = verify(c)

	set := func(name, value string) { config.RuntimeParams[name] = value }
	set("application_name", "selvage")
	set("client_encoding", "UTF8")
	set("default_transaction_isolation", "read committed")
	set("statement_timeout", millis(patience))
	set("lock_timeout", millis(patience*2/5))
	set("idle_in_transaction_session_timeout", millis(patience))

	if c.Sync == Normal {
		set("synchronous_commit", "off")
	}
	if c.ReadOnly {
		set("default_transaction_read_only", "on")
	}
	return config, nil
}

// isCutPassword reports whether a special character in the password was probably not encoded, so that a
// part of the password was parsed as another part of the URL. An error about that part would reveal the
// password. Only the parameters user and password may contain an unencoded @.
func isCutPassword(u *url.URL) bool {
	if strings.Contains(u.EscapedPath(), "@") || strings.Contains(u.Fragment, "@") {
		return true
	}
	for parameter := range strings.SplitSeq(u.RawQuery, "&") {
		name, _, _ := strings.Cut(parameter, "=")
		if strings.Contains(parameter, "@") && name != "user" && name != "password" {
			return true
		}
	}
	return false
}

func (c Config) patience() time.Duration { return cmp.Or(c.Patience, defaultPatience) }

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// parseServer parses a URL, and reads the same environment variables and files as libpq. Its errors
// never show the URL, which contains the password.
func parseServer(raw string) (*pgx.ConnConfig, error) {
	u, err := url.Parse(raw)
	if err != nil || isCutPassword(u) {
		return nil, &Unfit{
			Found:  "the PostgreSQL URL is invalid",
			Remedy: "write it as postgres://USER:PASSWORD@HOST:PORT/NAME, with special characters as %XX",
		}
	}
	config, err := pgx.ParseConfig(raw)
	if err == nil {
		return config, nil
	}

	// The error from pgx begins with the URL, and may repeat the password.
	reason := err.Error()
	if _, after, ok := strings.Cut(reason, "`: "); ok {
		reason = after
	}
	if password, ok := u.User.Password(); ok && password != "" {
		reason = strings.ReplaceAll(reason, password, "…")
	}
	return nil, &Unfit{
		Found:  "the PostgreSQL URL cannot be used: " + reason,
		Remedy: "write it as postgres://USER:PASSWORD@HOST:PORT/NAME",
	}
}

// shown returns the URL of a server without its password.
func shown(config *pgx.ConnConfig) string {
	u := url.URL{
		Scheme: "postgres",
		User:   url.User(config.User),
		Host:   host(config),
		Path:   "/" + config.Database,
	}
	return u.String()
}

// host returns the addresses of a server, separated by commas.
func host(config *pgx.ConnConfig) string {
	hosts := []string{net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))}
	for _, f := range config.Fallbacks {
		if h := net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port))); h != hosts[len(hosts)-1] {
			hosts = append(hosts, h)
		}
	}
	return strings.Join(hosts, ",")
}

// refusal explains why a server cannot be used, and what to do about it. It does not wrap err,
// because pgx's errors contain the password, though they do not print it.
func refusal(config *pgx.ConnConfig, err error) *Unfit {
	server := "PostgreSQL at " + host(config)
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return refusalOf(e, server, config.User, config.Database)
	}
	if errors.Is(err, errStandby) {
		return &Unfit{
			Found:  server + " is a standby, or this role is read-only",
			Remedy: "use the primary; if the URL has several hosts, the writable one is used",
		}
	}
	return &Unfit{
		Found:  server + " cannot be reached: " + causesOf(err),
		Remedy: "start it, or set another host in the URL",
	}
}

// refusalOf explains an error that a server has returned to a role that uses a database.
func refusalOf(e *pgconn.PgError, server, role, database string) *Unfit {
	switch {
	case e.Code == "28P01":
		return &Unfit{
			Found:  fmt.Sprintf("%s rejects the password of role %s", server, role),
			Remedy: "set the correct password in the URL, or in the file named by PGPASSFILE",
		}
	case strings.HasPrefix(e.Code, "28"):
		return &Unfit{
			Found:  fmt.Sprintf("%s rejects role %s: %s", server, role, e.Message),
			Remedy: "create the role, and admit it with a line in pg_hba.conf",
		}
	case e.Code == "3D000":
		return &Unfit{
			Found:  fmt.Sprintf("%s has no database %s", server, database),
			Remedy: fmt.Sprintf("create it: CREATE DATABASE %s OWNER %s", database, role),
		}
	case e.Code == "42501":
		return &Unfit{
			Found: fmt.Sprintf("%s does not let role %s create tables in database %s: %s",
				server, role, database, e.Message),
			Remedy: fmt.Sprintf("make the role its owner: ALTER DATABASE %s OWNER TO %s; "+
				"or GRANT CREATE, USAGE ON SCHEMA public TO %s", database, role, role),
		}
	case e.Code == "42P07":
		return &Unfit{
			Found:  fmt.Sprintf("%s has other content in database %s: %s", server, database, e.Message),
			Remedy: "use a separate database, or a separate schema with ?search_path=SCHEMA",
		}

	case e.Code == "53300":
		return &Unfit{
			Found:  server + " has no free connections: " + e.Message,
			Remedy: "raise its max_connections, or lower the pool of each node",
		}
	case e.Code == "57P03":
		return &Unfit{
			Found:  server + " is not ready: " + e.Message,
			Remedy: "wait until it is",
		}
	}
	return &Unfit{
		Found:  fmt.Sprintf("%s returned an error: %s (%s)", server, e.Message, e.Code),
		Remedy: "check its log",
	}
}

// causesOf formats the root causes of a connection error: one for each address that was tried,
// without duplicates.
func causesOf(err error) string {
	var causes []string
	for _, text := range rootCauses(err) {
		if !slices.Contains(causes, text) {
			causes = append(causes, text)
		}
	}
	return strings.Join(causes, ", ")
}

const noAnswer = "no response in time"

// rootCauses returns the texts of the innermost errors of a tree.
func rootCauses(err error) []string {
	var dns *net.DNSError
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		var all []string
		for _, child := range e.Unwrap() {
			all = append(all, rootCauses(child)...)
		}
		return all
	case *net.OpError:
		if e.Timeout() {
			return []string{noAnswer}
		}
	}

	if err == context.DeadlineExceeded {
		return []string{noAnswer}
	}

	if inner := errors.Unwrap(err); inner != nil && !errors.As(err, &dns) {
		return rootCauses(inner)
	}
	if dns != nil {
		return []string{dns.Error()}
	}
	return []string{strings.ReplaceAll(err.Error(), "\n", "; ")}
}
