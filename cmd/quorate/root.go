package main

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
)

// newRoot builds the command tree.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "quorate",
		Short:         "A RocketMQ-compatible message broker whose acknowledgements are proofs",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			near := ""
			if names := cmd.SuggestionsFor(args[0]); len(names) > 0 {
				near = "; did you mean " + strings.Join(names, " or ") + "?"
			}
			return usagef("unknown command %q%s (quorate --help lists them)", args[0], near)
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w (%s --help lists the flags)", err, cmd.CommandPath())
	})
	root.AddCommand(newStandaloneCommand(), newNamesrvCommand(), newBrokerCommand(), newTryCommand(), newErrorsCommand(), newConfigCommand(), newDoctorCommand(), newBenchCommand(), newAdminCommand(), newTopicCommand(), newGroupCommand(), newMessageCommand(), newNodeCommand(), newClusterCommand(), newKVCommand(), newVersion())
	return root
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "quorate %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
