package agent

import "testing"

func TestName(t *testing.T) {
	const (
		chromium = "AppleWebKit/537.36 (KHTML, like Gecko)"
		webkit   = "AppleWebKit/605.1.15 (KHTML, like Gecko)"
	)
	for userAgent, want := range map[string]string{
		"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0": "Firefox on Linux",

		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) " + chromium +
			" Chrome/138.0.0.0 Safari/537.36": "Chrome on Windows",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) " + chromium +
			" Chrome/138.0.0.0 Safari/537.36 Edg/138.0.0.0": "Edge on Windows",
		"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) " + chromium +
			" Chrome/138.0.0.0 Safari/537.36 OPR/120.0.0.0": "Opera on ChromeOS",

		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) " + webkit +
			" Version/18.5 Safari/605.1.15": "Safari on Mac",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) " + webkit +
			" Version/18.5 Mobile/15E148 Safari/604.1": "Safari on iPhone",
		"Mozilla/5.0 (iPad; CPU OS 18_5 like Mac OS X) " + webkit +
			" CriOS/138.0.7204.33 Mobile/15E148 Safari/604.1": "Chrome on iPad",

		"Mozilla/5.0 (Linux; Android 10; K) " + chromium +
			" SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36": "Samsung Internet on Android",
		"Mozilla/5.0 (Linux; Android 14; Pixel 8; wv) " + chromium +
			" Version/4.0 Chrome/138.0 Mobile Safari/537.36": "An app on Android",

		"Mozilla/5.0 (Unheard-of)": "A browser",
		"curl/8.14.1":              "curl",
		"okhttp/4.12.0":            "okhttp",
		"":                         "An unknown device",
	} {
		if got := Name(userAgent); got != want {
			t.Errorf("Name(%q) = %q, want %q", userAgent, got, want)
		}
	}
}
