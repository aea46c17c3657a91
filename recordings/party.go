package recordings

import "strings"

// Spellings returns the forms in which a party of a call may be stored. An address is returned
// unchanged. A number is returned without separators, with a leading plus and without one.
func Spellings(party string) []string {
	digits := strings.Map(func(r rune) rune {
		if strings.ContainsRune(" -./()\u00a0", r) {
			return -1
		}
		return r
	}, party)
	number := strings.TrimPrefix(digits, "+")
	if number == "" || strings.Trim(number, "0123456789") != "" {
		return []string{party}
	}
	return []string{"+" + number, number}
}
