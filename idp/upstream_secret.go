package idp

import "fmt"

// UpstreamSecretName returns the name that binds a sealed secret to its provider.
func UpstreamSecretName(id string) string { return "secret of upstream " + id }

// seal sets the secret of u, unless secret is nil.
func (us *Upstreams) seal(u *Upstream, secret *string) (err error) {
	if secret == nil {
		return nil
	}
	u.Secret = ""
	if *secret == "" {
		return nil
	}
	u.Secret, err = us.Ring.SealSecret(UpstreamSecretName(u.ID), []byte(*secret))
	if err != nil {
		return fmt.Errorf("encrypting secret: %w", err)
	}
	return nil
}

// OpenSecret returns the secret of u, or "".
func (us *Upstreams) OpenSecret(u Upstream) (string, error) {
	if u.Secret == "" {
		return "", nil
	}
	secret, err := us.Ring.OpenSecret(UpstreamSecretName(u.ID), u.Secret)
	if err != nil {
		return "", err
	}
	return string(secret), nil
}
