package fabric

import "errors"

// CheckEmail reports what is no e-mail address, as a problem on param.
func CheckEmail(param, email string) error { return checkEmail(param, email) }

// CheckPersonName reports a name of somebody that cannot be kept, or reads as something
// that it is not.
func CheckPersonName(param, name string) error {
	return errors.Join(checkText(param, name), checkShown(param, name))
}
