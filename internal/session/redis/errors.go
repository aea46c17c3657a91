package redis

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// withoutArguments returns an error that may be shown. Some errors from servers repeat the command's
// arguments, which are secret keys and values. withoutArguments removes them.
func withoutArguments(err error) error {
	if text, _, repeats := strings.Cut(err.Error(), ", with args"); repeats {
		return errors.New(text)
	}
	return err
}

// misconfiguration explains err if the configuration caused it. Otherwise the server is unreachable
// or cannot serve requests now, and may recover at any time, so misconfiguration returns nil.
func (l location) misconfiguration(err error) error {
	var certificate *tls.CertificateVerificationError
	var notTLS tls.RecordHeaderError
	contains := func(what string) bool { return err != nil && strings.Contains(strings.ToLower(err.Error()), what) }

	switch {
	case err == nil:
		return nil
	case contains("wrongpass"), contains("invalid username-password pair"):
		return errors.New("it rejects the URL's user and password")
	case contains("noauth"):
		return errors.New("it requires a password, but the URL has none" + sentinelHint(l))
	case contains("auth") && contains("without any password"):
		return errors.New("the URL has a password, but the server does not use one")
	case contains("noperm"):
		return fmt.Errorf("the account lacks a permission (docs/redis.md lists them): %w", withoutArguments(err))
	case contains("db index is out of range"), contains("invalid db index"):
		return fmt.Errorf("it has no database %d", l.database)
	case contains("moved ") && l.mode != Cluster:
		return errors.New("it is a Cluster node: write redis-cluster:// instead of " + l.scheme + "://")
	case contains("cluster support disabled"):
		return errors.New("it is not a Cluster: write redis:// instead of " + l.scheme + "://")
	case contains("unknown command 'sentinel'"):
		return errors.New("it is not a Sentinel: write redis:// instead of " + l.scheme + "://")
	case contains("unknown command"):
		return fmt.Errorf("it lacks a required command; if it is a Sentinel, write redis-sentinel://: %w",
			withoutArguments(err))
	case l.mode == Sentinel && errors.Is(err, redis.Nil):
		return fmt.Errorf("the Sentinels do not know a master named %q", l.master)
	case errors.As(err, &certificate):
		return fmt.Errorf("its certificate is not trusted (set the parameter ca to the file of its authority): %w",
			certificate.Err)
	case errors.As(err, &notTLS):
		return errors.New("this port does not use TLS: write redis instead of rediss, or use another port")
	}
	return nil
}

func sentinelHint(l location) string {
	if l.mode != Sentinel {
		return ""
	}
	return "; sentinel_user and sentinel_password are for the Sentinels"
}
