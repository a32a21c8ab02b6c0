"""A header that is parsed once, for all sources that start with it."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _precompiled_header_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    contexts = [dep[CcInfo].compilation_context for dep in ctx.attr.deps]

    # GCC takes NAME.h.gch for NAME.h where both lie in one folder, and only if it was made with the same options.
    header = ctx.actions.declare_file(ctx.label.name + ".h")
    ctx.actions.expand_template(template = ctx.file.hdr, output = header, substitutions = {})
    compiled = ctx.actions.declare_file(ctx.label.name + ".h.gch")
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = header.path,
        output_file = compiled.path,
        use_pic = True,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts + ["-x", "c++-header"],
        quote_include_directories = depset([".", ctx.bin_dir.path]),
        system_include_directories = depset(transitive = [c.system_includes for c in contexts]),
        preprocessor_defines = depset(transitive = [c.defines for c in contexts]),
    )
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(feature_configuration = features, action_name = CPP_COMPILE_ACTION_NAME),
        arguments = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        ),
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        ),
        inputs = depset([header] + ctx.files.includes, transitive = [toolchain.all_files] + [c.headers for c in contexts]),
        outputs = [compiled],
        mnemonic = "PrecompileHeader",
        progress_message = "Precompiling %s" % ctx.label,
        execution_requirements = {"no-sandbox": "1"},  # as for all compilations: see .bazelrc
    )
    headers = depset([header, compiled])
    return [
        DefaultInfo(files = headers),
        CcInfo(compilation_context = cc_common.create_compilation_context(headers = headers)),
    ]

precompiled_header = rule(
    doc = "Compiles a header ahead. A source takes it with `-include $(BINDIR)/PACKAGE/NAME.h` and the same options for code generation.",
    implementation = _precompiled_header_impl,
    attrs = {
        "copts": attr.string_list(doc = "As those of the sources that take it, so far as they change code or macros."),
        "deps": attr.label_list(providers = [CcInfo], doc = "Libraries whose headers it includes."),
        "hdr": attr.label(allow_single_file = [".h"], mandatory = True),
        "includes": attr.label_list(allow_files = [".h"], doc = "Headers of ours that it includes."),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
