package truststore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// An account is the user account whose browsers are configured: under sudo, that of the user who called
// sudo, and otherwise that of the process.
type account struct {
	home   string
	data   string              // XDG_DATA_HOME
	config string              // XDG_CONFIG_HOME
	as     *syscall.Credential // nil means the account of the process
}

// whoIs returns the account. Under sudo, programs run as the user who called sudo, so that the files they
// create in this user's home directory do not belong to root.
func whoIs(getenv func(string) string) (account, error) {
	a := account{
		home:   getenv("HOME"),
		data:   getenv("XDG_DATA_HOME"),
		config: getenv("XDG_CONFIG_HOME"),
	}
	callerID := getenv("SUDO_UID")
	if os.Geteuid() == 0 && callerID != "" && callerID != "0" {
		var err error
		a, err = caller(callerID, getenv("SUDO_GID"))
		if err != nil {
			return account{}, fmt.Errorf("finding the account that called sudo: %w", err)
		}
	}

	if a.home == "" {
		return account{}, errors.New("finding browsers: HOME is not set")
	}
	if a.data == "" {
		a.data = a.home + "/.local/share"
	}
	if a.config == "" {
		a.config = a.home + "/.config"
	}

	return a, nil
}

// caller returns the account of the user who called sudo, with these IDs.
func caller(uid, gid string) (account, error) {
	u, err := user.LookupId(uid)
	if err != nil {
		return account{}, err
	}

	id, err := strconv.ParseUint(uid, 10, 32)
	if err != nil {
		return account{}, err
	}
	if gid == "" {
		gid = u.Gid
	}

	group, err := strconv.ParseUint(gid, 10, 32)
	if err != nil {
		return account{}, err
	}
	credential := &syscall.Credential{Uid: uint32(id), Gid: uint32(group)}
	return account{home: u.HomeDir, as: credential}, nil
}

// run runs a program as the account and returns its standard output.
func (a account) run(ctx context.Context, stdin []byte, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "HOME="+a.home, "LC_ALL=C")
	cmd.Stdin = bytes.NewReader(stdin)
	if a.as != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.as}
	}

	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return nil, fmt.Errorf("%s: %s", program, lastLine(failed.Stderr, err))
	}
	if err != nil {
		return nil, fmt.Errorf("running %s: %w", program, err)
	}

	return out, nil
}

// lastLine returns the last line that a program printed to stderr or, if it printed nothing, how the
// program ended.
func lastLine(stderr []byte, err error) string {
	lines := strings.Split(strings.TrimSpace(string(stderr)), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return last
	}
	return err.Error()
}
