package main

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/mqadmin"
)

func newAdminCommand() *cobra.Command {
	return &cobra.Command{
		Use: "admin COMMAND …", Short: "mqadmin's commands with mqadmin's options and columns",
		// Java's options are not cobra's: -topic is one option there and three here.
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			var used target
			logger := clientLoggerOf(cmd, slices.Contains(args, "--verbose"))
			args = slices.DeleteFunc(slices.Clone(args), func(word string) bool { return word == "--verbose" })
			err := mqadmin.Run(cmd.Context(), cmd.OutOrStdout(), logger, args, func(flag string) ([]string, error) {
				t, err := newTarget(flag)
				used = t
				return t.addrs, err
			})
			switch {
			case errors.Is(err, mqadmin.ErrUsage), errors.Is(err, mqadmin.ErrUnserved):
				return &usageError{err}
			case used.addrs != nil:
				return explain(err, used)
			}
			return err
		},
	}
}
