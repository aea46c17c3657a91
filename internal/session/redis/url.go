package redis

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A Mode is the kind of Redis deployment that a URL names.
type Mode string

// The possible values of a Mode.
const (
	Single   Mode = "single"
	Cluster  Mode = "cluster"
	Sentinel Mode = "sentinel"
)

// modes maps schemes to modes. The schemes for TLS have an additional s.
var modes = map[string]Mode{"redis": Single, "redis-cluster": Cluster, "redis-sentinel": Sentinel}

// A location is a parsed URL.
type location struct {
	scheme   string
	mode     Mode
	hosts    []string    // with ports
	tls      *tls.Config // nil means no TLS
	user     string
	password string
	database int    // always 0 in mode Cluster
	prefix   string // the beginning of all keys, with a trailing colon; "" means none

	// These fields are set only in mode Sentinel.
	master           string // the master's name, as the Sentinels know it
	sentinelUser     string
	sentinelPassword string
}

// String returns the URL without credentials.
func (l location) String() string {
	s := l.scheme + "://"
	if l.master != "" {
		s += url.PathEscape(l.master) + "@"
	}
	s += strings.Join(l.hosts, ",")
	if l.database != 0 {
		s += "/" + strconv.Itoa(l.database)
	}
	return s
}

// encodingHint is appended to errors about URLs, because most wrong URLs contain a password that is not
// encoded.
const encodingHint = "; in a password, write / ? # @ : % as %2F %3F %23 %40 %3A %25"

// Check returns an error if a URL, or a file that it names, is invalid. It does not connect.
func Check(raw string) error {
	_, err := parse(raw)
	return err
}

// parse parses a URL. It does not use net/url, which accepts only one host, and whose errors show
// the URL with its password.
func parse(raw string) (location, error) {
	scheme, rest, found := strings.Cut(raw, "://")
	plain, secure := strings.CutPrefix(scheme, "rediss")
	if secure {
		plain = "redis" + plain
	}
	mode, known := modes[plain]
	if !found || !known {
		return location{}, errors.New("a Redis URL begins with redis://, redis-cluster:// or redis-sentinel://, " +
			"with rediss instead of redis for TLS")
	}

	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	credentials, hosts := cutLast(authority)

	l := location{scheme: scheme, mode: mode}
	err := errors.Join(
		l.parseCredentials(credentials),
		l.parseHosts(hosts),
		l.parseDatabase(path),
		l.parseParameters(query, secure))
	return l, err
}

// cutLast returns the texts before and after the last @. Without an @, before is empty.
func cutLast(text string) (before, after string) {
	i := strings.LastIndex(text, "@")
	return text[:max(i, 0)], text[i+1:]
}

func (l *location) parseCredentials(raw string) error {
	credentials := raw
	if l.mode == Sentinel {
		var name string
		credentials, name = splitMaster(raw)
		master, err := url.PathUnescape(name)
		if err != nil || master == "" {
			return fmt.Errorf("the Redis URL lacks the master's name in the Sentinels: "+
				"%s://MASTER@HOST:26379%s", l.scheme, encodingHint)
		}
		l.master = master
	}
	if credentials == "" {
		return nil
	}

	rawUser, rawPassword, found := strings.Cut(credentials, ":")
	if !found {
		return errors.New("the Redis URL has a user without a password: write USER:PASSWORD@, or " +
			":PASSWORD@ for the default user" + encodingHint)
	}

	invalid := errors.New("the user and password in the Redis URL are invalid" + encodingHint)
	user, err := url.PathUnescape(rawUser)
	if err != nil {
		return invalid
	}
	password, err := url.PathUnescape(rawPassword)
	if err != nil {
		return invalid
	}
	if user != "" && password == "" {
		return invalid
	}
	l.user = user
	l.password = password
	return nil
}

// splitMaster splits the part of a Sentinel URL that precedes the hosts. This part has the form
// USER:PASSWORD@MASTER, MASTER:PASSWORD or MASTER.
func splitMaster(raw string) (credentials, master string) {
	if strings.Contains(raw, "@") {
		return cutLast(raw)
	}
	master, password, _ := strings.Cut(raw, ":")
	if password == "" {
		return "", master
	}
	return ":" + password, master
}

// parseHosts parses the hosts, and adds the default port to each one without a port.
func (l *location) parseHosts(raw string) error {
	defaultPort := "6379"
	if l.mode == Sentinel {
		defaultPort = "26379"
	}
	for host := range strings.SplitSeq(raw, ",") {
		if strings.HasSuffix(host, "]") || !strings.Contains(host, ":") {
			host += ":" + defaultPort
		}
		name, port, err := net.SplitHostPort(host)
		if err != nil || !isHost(name) || !isPort(port) {
			return fmt.Errorf("the Redis URL needs a host, and a port from 1 to 65535 unless it is the "+
				"default: %s://HOST:6379%s", l.scheme, encodingHint)
		}
		l.hosts = append(l.hosts, net.JoinHostPort(name, port))
	}

	if l.mode == Single && len(l.hosts) > 1 {
		return errors.New("the Redis URL has several hosts: write redis-cluster:// if they are a " +
			"Cluster, redis-sentinel:// if they are Sentinels")
	}
	return nil
}

func isHost(name string) bool { return name != "" && !strings.ContainsAny(name, " \t#") }

func isPort(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= 1 && n <= 65535
}

func (l *location) parseDatabase(path string) error {
	if path == "" {
		return nil
	}
	n, err := strconv.ParseUint(path, 10, 16)
	if err != nil {
		return errors.New("the Redis URL must end in a database number, such as /0" + encodingHint)
	}
	if n > 0 && l.mode == Cluster {
		return errors.New("the Redis URL has a database number, but a Cluster has only one database")
	}
	l.database = int(n)
	return nil
}

// parameters lists the known parameters of a URL.
var parameters = []string{"ca", "cert", "key", "sentinel_user", "sentinel_password", "prefix"}

func (l *location) parseParameters(query string, secure bool) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("the parameters of the Redis URL are invalid" + encodingHint)
	}
	for name, v := range values {
		if err := l.checkParameter(name, v, secure); err != nil {
			return err
		}
	}

	if prefix := values.Get("prefix"); prefix != "" {
		l.prefix = prefix + ":"
	}
	l.sentinelUser = values.Get("sentinel_user")
	l.sentinelPassword = values.Get("sentinel_password")
	if !secure {
		return nil
	}
	l.tls, err = tlsConfig(values.Get("ca"), values.Get("cert"), values.Get("key"))
	return err
}

// checkParameter returns an error if a parameter is unknown, has an invalid value, or does not
// belong to a URL of this form.
func (l *location) checkParameter(name string, values []string, secure bool) error {
	if !slices.Contains(parameters, name) {
		// The name is not shown, because it is probably part of a password that contains a question
		// mark.
		return fmt.Errorf("the Redis URL has an unknown parameter; known are %s%s",
			strings.Join(parameters, ", "), encodingHint)
	}
	if len(values) > 1 || values[0] == "" {
		return fmt.Errorf("the parameter %s of the Redis URL needs exactly one value", name)
	}

	switch name {
	case "prefix":
		if !isPrefix(values[0]) {
			return errors.New("the prefix in the Redis URL must be 1 to 32 letters, digits, - and _")
		}
	case "sentinel_user", "sentinel_password":
		if l.mode != Sentinel {
			return fmt.Errorf("the parameter %s of the Redis URL belongs to redis-sentinel://", name)
		}
	default:
		if !secure {
			return fmt.Errorf("the parameter %s of the Redis URL is for TLS: write rediss instead of "+
				"redis, or remove it", name)
		}
	}
	return nil
}

// isPrefix reports whether text may be the prefix of all keys. Braces would make it the hash tag,
// so that all keys would be in the same slot of a Cluster.
func isPrefix(text string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	return len(text) <= 32 && strings.Trim(text, allowed) == ""
}
