package server

import "github.com/selvage/selvage/internal/password"

// openPolicy opens the rules for new passwords.
func (a *App) openPolicy() error {
	c := a.Config.Password
	a.policy = password.Policy{MinLength: int(c.MinLength), MinScore: int(c.MinScore)}
	if c.BreachedList == "" {
		return nil
	}
	list, err := password.OpenBreached(string(c.BreachedList))
	if err != nil {
		return err
	}
	a.policy.Breached = list
	a.opened = append(a.opened, list)
	return nil
}
