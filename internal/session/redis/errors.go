package redis

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// plain returns an error that may be shown. Some answers of a server repeat the arguments of the command,
// which are keys and values; plain removes them.
func plain(err error) error {
	if text, _, repeats := strings.Cut(err.Error(), ", with args"); repeats {
		return errors.New(text)
	}
	return err
}

// wrong explains err if it shows a wrong configuration. Otherwise it returns nil: the server is
// unreachable or cannot serve now, and may recover at any time.
func (l location) wrong(err error) error {
	var certificate *tls.CertificateVerificationError
	var notTLS tls.RecordHeaderError
	says := func(what string) bool { return err != nil && strings.Contains(strings.ToLower(err.Error()), what) }

	switch {
	case err == nil:
		return nil
	case says("wrongpass"), says("invalid username-password pair"):
		return errors.New("it refuses the user and password of the URL")
	case says("noauth"):
		return errors.New("it asks for a password, and the URL has none for it" + sentinelHint(l))
	case says("auth") && says("without any password"):
		return errors.New("the URL has a password, but it asks for none")
	case says("noperm"):
		return fmt.Errorf("the account may not do all that is needed (docs/redis.md lists it): %w", plain(err))
	case says("db index is out of range"), says("invalid db index"):
		return fmt.Errorf("it has no database %d", l.database)
	case says("moved ") && l.mode != Cluster:
		return errors.New("it is a node of a Cluster: write redis-cluster:// in place of " + l.scheme + "://")
	case says("cluster support disabled"):
		return errors.New("it is no Cluster: write redis:// in place of " + l.scheme + "://")
	case says("unknown command 'sentinel'"):
		return errors.New("it is no Sentinel: write redis:// in place of " + l.scheme + "://")
	case says("unknown command"):
		return fmt.Errorf("it does not know a command that is needed; if it is a Sentinel, write redis-sentinel://: %w",
			plain(err))
	case l.mode == Sentinel && errors.Is(err, redis.Nil):
		return fmt.Errorf("the Sentinels know no master by the name %q", l.master)
	case errors.As(err, &certificate):
		return fmt.Errorf("its certificate is not trusted (the parameter ca names a file of who vouches for it): %w",
			certificate.Err)
	case errors.As(err, &notTLS):
		return errors.New("it speaks no TLS there: write redis in place of rediss, or name another port")
	}
	return nil
}

func sentinelHint(l location) string {
	if l.mode != Sentinel {
		return ""
	}
	return "; sentinel_user and sentinel_password are for the Sentinels"
}
