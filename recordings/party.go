package recordings

import (
	"slices"
	"strings"
)

// maxDigits is the maximum number of digits of a telephone number. E.164 numbers have at most 15
// digits, and dial plans may add a few in front.
const maxDigits = 20

// Digits returns the digits of a telephone number in any notation, or "" if party is not a number.
// If the number has a country code (after a plus, or after the prefix 00 or 011), the digits begin
// with it. An extension is omitted, and so is the leading zero of a national number.
func Digits(party string) string {
	number, international := strings.CutPrefix(bareNumber(party), "+")
	switch {
	case number == "" || len(number) > maxDigits || strings.Trim(number, "0123456789") != "":
		return ""
	case international:
		return number
	case strings.HasPrefix(number, "00"):
		return number[2:]
	case strings.HasPrefix(number, "011") && len(number) >= 13: // longer than any national number
		return number[3:]
	}

	if national, ok := strings.CutPrefix(number, "0"); ok && national != "" {
		return national
	}
	return number
}

// bareNumber removes everything that surrounds or separates the digits of a number. It keeps all
// other characters.
func bareNumber(party string) string {
	if _, inside, ok := strings.Cut(party, "<"); ok { // "Name" <sip:…>
		party, _, _ = strings.Cut(inside, ">")
	}
	lower := strings.ToLower(strings.TrimSpace(party))
	for _, scheme := range []string{"tel:", "sips:", "sip:"} {
		if rest, ok := strings.CutPrefix(lower, scheme); ok {
			lower, _, _ = strings.Cut(rest, "@")
			break
		}
	}

	lower, _, _ = strings.Cut(lower, ";") // parameters of a URI
	for _, extension := range []string{"ext", "x"} {
		number, after, ok := strings.Cut(lower, extension)
		onlyDigits := strings.Trim(after, " .:0123456789") == ""
		if ok && number != "" && onlyDigits {
			lower = number
		}
	}

	if strings.HasPrefix(lower, "+") || strings.HasPrefix(lower, "00") {
		lower = strings.Replace(lower, "(0)", "", 1) // +44 (0)20 …
	}

	return strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune(" -./()[]_~\t\u00a0\u202f\u2009\u2010\u2011\u2012\u2013\u2014", r):
			return -1
		case r >= '０' && r <= '９': // full width
			return r - '０' + '0'
		case r == '＋':
			return '+'
		}
		return r
	}, lower)
}

// Tail returns the digits of a number in reverse order, so that an index sorts numbers with the
// same last digits next to each other. It returns "" if party is not a number.
func Tail(party string) string {
	digits := []byte(Digits(party))
	slices.Reverse(digits)
	return string(digits)
}

// minNational is the minimum number of digits of a number without its country code.
const minNational = 7

// NationalTails takes the tail of a number with a country code, which has up to three digits. It
// returns the tails that the number may have without the country code. Switches may write numbers in
// this form.
func NationalTails(tail string) (tails []string) {
	for n := max(minNational, len(tail)-3); n < len(tail); n++ {
		tails = append(tails, tail[:n])
	}
	return tails
}
