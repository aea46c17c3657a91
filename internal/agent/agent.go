// Package agent describes browsers and other programs in words, so that people recognize a device
// in a list of sign-ins or in an email.
package agent

import "strings"

// agents maps a part of a User-Agent header to the browser that sends it. Most browsers also name
// other browsers for compatibility, so the first match counts.
var agents = [][2]string{
	{"Edg", "Edge"}, {"OPR/", "Opera"}, {"Opera", "Opera"}, {"SamsungBrowser/", "Samsung Internet"},
	{"Vivaldi/", "Vivaldi"}, {"FxiOS/", "Firefox"}, {"Firefox/", "Firefox"},
	{"CriOS/", "Chrome"}, {"HeadlessChrome/", "Chrome"}, {"Chromium/", "Chromium"}, {"; wv)", "An app"},
	{"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"Mobile/", "An app"},
}

// systems maps a part of a User-Agent header to the operating system. The first match counts.
var systems = [][2]string{
	{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"Windows", "Windows"},
	{"CrOS", "ChromeOS"}, {"Macintosh", "Mac"}, {"Mac OS X", "Mac"},
	{"FreeBSD", "FreeBSD"}, {"Linux", "Linux"},
}

// Name describes the sender of userAgent in words, such as "Firefox on Linux". Programs other than
// browsers are described by their own name.
func Name(userAgent string) string {
	first := func(of [][2]string) string {
		for _, rule := range of {
			if strings.Contains(userAgent, rule[0]) {
				return rule[1]
			}
		}
		return ""
	}

	product, system := first(agents), first(systems)
	switch {
	case !strings.HasPrefix(userAgent, "Mozilla/"):
		name, _, _ := strings.Cut(userAgent, "/")
		name, _, _ = strings.Cut(strings.TrimSpace(name), " ")
		if name == "" {
			return "An unknown device"
		}
		return name
	case product == "":
		product = "A browser"
	}

	if system == "" {
		return product
	}
	return product + " on " + system
}
