// Package agent describes browsers and other programs in words, so that people recognize a device
// in a list of sign-ins or in an email.
package agent

import "strings"

// A rule names the browser or operating system whose User-Agent headers contain a text.
type rule struct{ contains, name string }

// browsers lists the rules for browsers. The first match counts, because most browsers also name other
// browsers for compatibility.
var browsers = []rule{
	{"Edg", "Edge"},
	{"OPR/", "Opera"},
	{"Opera", "Opera"},
	{"SamsungBrowser/", "Samsung Internet"},
	{"Vivaldi/", "Vivaldi"},
	{"FxiOS/", "Firefox"},
	{"Firefox/", "Firefox"},
	{"CriOS/", "Chrome"},
	{"HeadlessChrome/", "Chrome"},
	{"Chromium/", "Chromium"},
	{"; wv)", "An app"},
	{"Chrome/", "Chrome"},
	{"Safari/", "Safari"},
	{"Mobile/", "An app"},
}

// systems lists the rules for operating systems. The first match counts.
var systems = []rule{
	{"iPhone", "iPhone"},
	{"iPad", "iPad"},
	{"Android", "Android"},
	{"Windows", "Windows"},
	{"CrOS", "ChromeOS"},
	{"Macintosh", "Mac"},
	{"Mac OS X", "Mac"},
	{"FreeBSD", "FreeBSD"},
	{"Linux", "Linux"},
}

// Name describes the sender of userAgent in words, such as "Firefox on Linux". Programs other than
// browsers are described by their own name.
func Name(userAgent string) string {
	if !strings.HasPrefix(userAgent, "Mozilla/") {
		return programName(userAgent)
	}

	browser, system := match(browsers, userAgent), match(systems, userAgent)
	if browser == "" {
		browser = "A browser"
	}
	if system == "" {
		return browser
	}
	return browser + " on " + system
}

// match returns the name in the first rule that matches, or "".
func match(rules []rule, userAgent string) string {
	for _, r := range rules {
		if strings.Contains(userAgent, r.contains) {
			return r.name
		}
	}
	return ""
}

// programName returns the name with which a User-Agent header begins, such as curl in curl/8.14.1.
func programName(userAgent string) string {
	name, _, _ := strings.Cut(userAgent, "/")
	name, _, _ = strings.Cut(strings.TrimSpace(name), " ")
	if name == "" {
		return "An unknown device"
	}
	return name
}
