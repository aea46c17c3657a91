package brand_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/brand"
	"github.com/selvage/selvage/internal/fuzzcost"
)

// A paint returns the color of each pixel of a picture.
type paint func(x, y int) color.Color

// solid paints every pixel with the same color.
func solid(c color.Color) paint { return func(int, int) color.Color { return c } }

// striped paints every second column, and leaves the others transparent.
func striped(c color.Color) paint {
	return func(x, _ int) color.Color {
		if x%2 == 0 {
			return color.NRGBA{}
		}
		return c
	}
}

func draw(wide, high int, p paint) image.Image {
	picture := image.NewNRGBA(image.Rect(0, 0, wide, high))
	for y := range high {
		for x := range wide {
			picture.Set(x, y, p(x, y))
		}
	}
	return picture
}

// encode returns the file into which the encoder as turns a picture.
func encode(t *testing.T, picture image.Image, as func(*bytes.Buffer, image.Image) error) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := as(&out, picture); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func asPNG(b *bytes.Buffer, p image.Image) error  { return png.Encode(b, p) }
func asJPEG(b *bytes.Buffer, p image.Image) error { return jpeg.Encode(b, p, nil) }
func asGIF(b *bytes.Buffer, p image.Image) error  { return gif.Encode(b, p, nil) }

// webp is a WebP picture of one red pixel.
const webp = "UklGRiQAAABXRUJQVlA4IBgAAAAwAQCdASoBAAEAAwA0JaQAA3AA/vuUAAA="

// TestMakeLogo shows that a picture is redrawn at a small size, and that the name of the result
// describes how to show it.
func TestMakeLogo(t *testing.T) {
	smallWebP, err := base64.StdEncoding.DecodeString(webp)
	if err != nil {
		t.Fatal(err)
	}
	newPNG := func(wide, high int, p paint) []byte { return encode(t, draw(wide, high, p), asPNG) }
	blue := color.NRGBA{R: 47, G: 75, B: 155, A: 255}
	black := newPNG(60, 40, solid(color.Black))

	tests := []struct {
		name       string
		file       []byte
		wide, high int
		plate      string
	}{
		{name: "a wide PNG", file: newPNG(1600, 200, solid(blue)), wide: 200, high: 25},
		{name: "a JPEG", file: encode(t, draw(300, 300, solid(color.White)), asJPEG), wide: 48, high: 48},
		{name: "a small WebP", file: smallWebP, wide: 1, high: 1},
		{name: "transparent black", file: newPNG(60, 40, striped(color.Black)), wide: 60, high: 40, plate: "d"},
		{name: "transparent white", file: newPNG(60, 40, striped(color.White)), wide: 60, high: 40, plate: "l"},
		{name: "fully transparent", file: newPNG(60, 40, solid(color.NRGBA{})), wide: 60, high: 40},
		{name: "one line", file: newPNG(4096, 1, solid(color.Black)), wide: 200, high: 1},
		{name: "a script at the end", file: append(black, "<script>alert(1)</script>"...), wide: 60, high: 40},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			logo, err := brand.MakeLogo(t.Context(), "logo", tt.file)
			if err != nil {
				t.Fatal(err)
			}
			shown, ok := brand.ParseLogo(logo.Name)
			if !ok {
				t.Fatalf("the name %q is not that of a logo", logo.Name)
			}
			if shown.Wide != tt.wide || shown.High != tt.high {
				t.Errorf("the logo is shown with %d by %d pixels, want %d by %d",
					shown.Wide, shown.High, tt.wide, tt.high)
			}
			if shown.Plate != tt.plate {
				t.Errorf("the logo is shown on the plate %q, want %q", shown.Plate, tt.plate)
			}

			if _, err := png.Decode(bytes.NewReader(logo.PNG)); err != nil {
				t.Errorf("the logo is not a PNG: %v", err)
			}
			if bytes.Contains(logo.PNG, []byte("script")) {
				t.Error("the logo contains the script")
			}
		})
	}
}

// TestPhotograph shows that the logo is small even if the picture can hardly be compressed.
func TestPhotograph(t *testing.T) {
	noise := rand.New(rand.NewPCG(1, 2))
	random := func() uint8 { return uint8(noise.Uint32()) }
	photograph := draw(800, 192, func(int, int) color.Color {
		return color.NRGBA{R: random(), G: random(), B: random(), A: 255}
	})
	logo, err := brand.MakeLogo(t.Context(), "logo", encode(t, photograph, asPNG))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(logo.PNG); n > 12<<10 {
		t.Errorf("the logo has %d bytes, want at most 12 KiB", n)
	}
}

// TestRefused shows that files in other formats, damaged files and pictures that are too large are
// refused.
func TestRefused(t *testing.T) {
	whole := encode(t, draw(600, 400, solid(color.Black)), asPNG)
	deep := encode(t, image.NewNRGBA64(image.Rect(0, 0, 1024, 600)), asPNG)
	progressive := scans(1)
	binary.BigEndian.PutUint16(progressive[progressiveHeight:], 500)
	bomb := bytes.Clone(whole)
	copy(bomb[16:], []byte{0, 0, 0x10, 0, 0, 0, 0x10, 0}) // the header claims 4096 by 4096
	binary.BigEndian.PutUint32(bomb[29:], crc32.ChecksumIEEE(bomb[12:29]))
	const lossless = "RIFF\x12\x00\x00\x00WEBPVP8L\x06\x00\x00\x00\x2f\xff\xc3\x7f\x00\x00"

	for _, tt := range []struct {
		name string
		file []byte
		want string
	}{
		{"nothing", nil, "logo"},
		{"text", []byte("<script>alert(1)</script>"), "logo"},
		{"SVG", []byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`), "logo"},
		{"GIF", encode(t, draw(9, 9, solid(color.Black)), asGIF), "logo"},
		{"half a file", whole[:len(whole)/2], "logo"},
		{"a bomb", bomb, "a picture may have"},
		{"a large file", make([]byte, brand.MaxUpload+1), "logo"},
		{"16 bits per color", deep, "16 bits"},
		{"a progressive JPEG", progressive, "progressive"},
		{"a lossless WebP", []byte(lossless), "lossless"},
		{"too wide", encode(t, draw(4097, 1, solid(color.Black)), asPNG), "logo"},
	} {
		logo, err := brand.MakeLogo(t.Context(), "logo", tt.file)
		if err == nil {
			t.Errorf("%s: MakeLogo accepts it as %s, want an error", tt.name, logo.Name)
			continue
		}
		if !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: MakeLogo = %v, want an error that contains %q", tt.name, err, tt.want)
		}
	}
}

func TestParseLogoRefuses(t *testing.T) {
	digits := strings.Repeat("0", 32)
	for _, name := range []string{"", "x", "../../etc/passwd", digits, digits + "-0x5", digits + "-5x5x"} {
		if _, ok := brand.ParseLogo(name); ok {
			t.Errorf("%q is accepted as the name of a logo", name)
		}
	}
}

// FuzzMake shows that any input is either refused or redrawn as a small logo, at a bounded cost.
func FuzzMake(f *testing.F) {
	f.Add([]byte("\x89PNG\r\n\x1a\n"))
	f.Add([]byte("RIFF\x24\x00\x00\x00WEBPVP8 "))
	f.Add([]byte("\xff\xd8\xff\xe0"))
	f.Add(scans(20))

	bound := fuzzcost.Bound{CPU: 100 * time.Millisecond, Heap: 5 << 20}
	f.Fuzz(func(t *testing.T, raw []byte) {
		bound.Check(t, len(raw), func() {
			logo, err := brand.MakeLogo(t.Context(), "logo", raw)
			if err != nil {
				return
			}
			if _, ok := brand.ParseLogo(logo.Name); !ok {
				t.Errorf("the name %q is not that of a logo", logo.Name)
			}
			if n := len(logo.PNG); n > 12<<10 {
				t.Errorf("the logo has %d bytes, want at most 12 KiB", n)
			}
		})
	})
}

// progressiveHeight is the offset of the picture's height in the JPEG that scans returns.
const progressiveHeight = 2 + 4 + 65 + 5

// scans returns a gray JPEG of 512 by 400 pixels with n scans. Each scan takes 18 bytes, but makes
// the decoder visit every block.
func scans(n int) []byte {
	var b bytes.Buffer
	b.WriteString("\xff\xd8\xff\xdb\x00\x43\x00" + strings.Repeat("\x01", 64)) // a quantization table
	b.WriteString("\xff\xc2\x00\x0b\x08\x01\x90\x02\x00\x01\x01\x11\x00")      // the frame: progressive
	// The Huffman table has one code: the end of the band for thousands of blocks.
	b.WriteString("\xff\xc4\x00\x14\x10\x01" + strings.Repeat("\x00", 15) + "\xe0")
	scan := "\xff\xda\x00\x08\x01\x01\x00\x01\x3f\x00" + strings.Repeat("\x00", 8)
	b.WriteString(strings.Repeat(scan, n) + "\xff\xd9")
	return b.Bytes()
}

// colorScans returns a JPEG of 512 by 400 pixels with n scans and three components at full
// resolution. Each scan reads one bit for every block.
func colorScans(n int) []byte {
	const components = "\x03\x01\x11\x00\x02\x11\x00\x03\x11\x00"
	var b bytes.Buffer
	b.WriteString("\xff\xd8\xff\xdb\x00\x43\x00" + strings.Repeat("\x01", 64))
	b.WriteString("\xff\xc2\x00\x11\x08\x01\x90\x02\x00" + components)
	b.WriteString("\xff\xc4\x00\x14\x00\x01" + strings.Repeat("\x00", 16)) // one code: no difference
	scan := "\xff\xda\x00\x0c\x03\x01\x00\x02\x00\x03\x00\x00\x00\x00" + strings.Repeat("\x00", 1200)
	b.WriteString(strings.Repeat(scan, n) + "\xff\xd9")
	return b.Bytes()
}

// TestScans shows that a small file is refused if it has too many scans, which make decoding
// expensive.
func TestScans(t *testing.T) {
	if _, err := brand.MakeLogo(t.Context(), "logo", scans(10)); err != nil {
		t.Errorf("a JPEG of ten scans: %v, want success", err)
	}
	_, err := brand.MakeLogo(t.Context(), "logo", scans(500))
	if err == nil || !strings.Contains(err.Error(), "scans") {
		t.Errorf("a JPEG of 500 scans: %v, want an error about the scans", err)
	}
}

// TestCost shows that even the pictures that cost most to decode stay within a bound: noise, 16
// bits per color, and many scans.
func TestCost(t *testing.T) {
	noise := rand.New(rand.NewPCG(1, 2))
	gray := image.NewGray(image.Rect(0, 0, 1023, 1000))
	colors := image.NewNRGBA(image.Rect(0, 0, 1024, 1024))
	for i := range gray.Pix {
		gray.Pix[i] = uint8(noise.Uint32())
	}
	for i := range colors.Pix {
		colors.Pix[i] = uint8(noise.Uint32())
	}
	deep := image.NewNRGBA64(image.Rect(0, 0, 512, 512))
	for i := range deep.Pix {
		deep.Pix[i] = uint8(i >> 12)
	}

	small := colors.SubImage(image.Rect(0, 0, 400, 96))
	twice := image.NewNRGBA(image.Rect(0, 0, 799, 191))
	thrice := image.NewNRGBA(image.Rect(0, 0, 1199, 287))
	bound := fuzzcost.Bound{CPU: 50 * time.Millisecond, Heap: 5 << 20}
	asCoarseJPEG := func(b *bytes.Buffer, p image.Image) error {
		return jpeg.Encode(b, p, &jpeg.Options{Quality: 30})
	}
	for name, file := range map[string][]byte{
		"gray noise":   encode(t, gray, asPNG),
		"small noise":  encode(t, small, asPNG),
		"half drawn":   encode(t, twice, asPNG),
		"third drawn":  encode(t, thrice, asPNG),
		"16-bit color": encode(t, deep, asPNG),
		"JPEG noise":   encode(t, colors, asCoarseJPEG),
		"scans":        scans(20),
		"color scans":  colorScans(20),
	} {
		t.Run(name, func(t *testing.T) {
			bound.Check(t, len(file), func() {
				if _, err := brand.MakeLogo(t.Context(), "logo", file); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
