package command

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/brand"
)

// flagLogos returns the logos in the files named by --logo and --dark-logo. An empty flag removes
// the logo.
func flagLogos(cmd *cobra.Command) (brand.Logos, error) {
	logos := make(brand.Logos)
	for _, theme := range brand.Themes {
		flag := strings.ReplaceAll(theme.Param(), "_", "-")
		name := cli.Text(cmd, flag)
		if name == nil {
			continue
		}
		if *name == "" {
			logos[theme] = brand.Logo{}
			continue
		}

		picture, err := os.ReadFile(*name)
		if err != nil {
			return nil, cli.Usagef("--%s: %v", flag, err)
		}
		logos[theme], err = brand.MakeLogo(cmd.Context(), theme.Param(), picture)
		if err != nil {
			return nil, err
		}
	}
	return logos, nil
}
