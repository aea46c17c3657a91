package recordings

import "strings"

// Spellings returns how a party of a call may have been written down that somebody looks for:
// an address as it is; a number without what people put between its digits, with its plus
// and without.
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
