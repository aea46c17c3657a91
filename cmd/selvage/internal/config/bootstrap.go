package config

import (
	"errors"
	"fmt"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

// checkBootstrap reports what is wrong with the first operator of the configuration,
// before anything is written.
func (c Config) checkBootstrap(from Origins) error {
	var errs []error
	refuse := func(path, format string, args ...any) {
		errs = append(errs, fmt.Errorf(from.keyAt(path)+" "+format, args...))
	}
	email, secret, token := c.BootstrapAdminEmail, c.BootstrapAdminPassword, c.BootstrapAdminAPIToken
	switch {
	case email == "" && secret == "" && token == "":
		return nil
	case email == "":
		refuse("bootstrap_admin_email", "is needed where bootstrap_admin_password or bootstrap_admin_api_token is set")
	case fabric.CheckEmail("email", email) != nil:
		refuse("bootstrap_admin_email", "needs an e-mail address")
	}
	if p := problem.First(operator.CheckPassword(secret, email)); p != nil {
		refuse("bootstrap_admin_password", "cannot be used: %s", p.Message)
	}
	if token != "" && fabric.CheckSecret("key", token) != nil {
		refuse("bootstrap_admin_api_token",
			"needs PT and 64 hexadecimal digits in small letters, such as `echo PT$(openssl rand -hex 32)` prints")
	}
	return errors.Join(errs...)
}
