# Completion for fish. The program itself knows its commands, options and names.
function __lockbench_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    for line in (command $words[1] complete $words[2..-1] "$typed" 2>/dev/null)
        if test "$line" = /
            __fish_complete_path "$typed"
        else
            echo $line
        end
    end
end
complete -c lockbench -f -a '(__lockbench_complete)'
